// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: a letter replaces what the cell shows instead of turning it into #.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut parts = input.split_whitespace();
    let w: usize = parts.next().unwrap().parse().unwrap();
    let mut sheet: Vec<Vec<u8>> = vec![vec![b'.'; w]];
    let (mut row, mut col, mut bell) = (0usize, 0usize, 0);
    for part in parts {
        for &key in part.as_bytes() {
            match key {
                b'<' => col = col.saturating_sub(1),
                b'^' => row = row.saturating_sub(1),
                b'/' => {
                    row += 1;
                    col = 0;
                    if row == sheet.len() {
                        sheet.push(vec![b'.'; w]);
                    }
                }
                _ => {
                    if col == w {
                        bell += 1;
                    } else {
                        if key != b'_' {
                            sheet[row][col] = key;
                        }
                        col += 1;
                    }
                }
            }
        }
    }
    println!("{}", bell);
    for line in sheet {
        let s = String::from_utf8(line).unwrap();
        let t = s.trim_end_matches('.');
        println!("{}", if t.is_empty() { "." } else { t });
    }
}
