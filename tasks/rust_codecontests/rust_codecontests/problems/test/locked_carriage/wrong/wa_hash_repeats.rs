// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: striking a cell twice by the same letter after # clears it, because only the last letter is remembered.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut parts = input.split_whitespace();
    let w: usize = parts.next().unwrap().parse().unwrap();
    let keys: String = parts.collect::<Vec<_>>().concat();
    let mut last = vec![vec![b'.'; w]];
    let mut shown = vec![vec![b'.'; w]];
    let (mut row, mut col, mut bell) = (0usize, 0usize, 0usize);
    for key in keys.bytes() {
        match key {
            b'<' => col = if col == 0 { 0 } else { col - 1 },
            b'^' => row = if row == 0 { 0 } else { row - 1 },
            b'/' => {
                row += 1;
                col = 0;
                if row == last.len() {
                    last.push(vec![b'.'; w]);
                    shown.push(vec![b'.'; w]);
                }
            }
            _ if col == w => bell += 1,
            _ => {
                if key != b'_' {
                    let before = last[row][col];
                    shown[row][col] = if before == b'.' || before == key { key } else { b'#' };
                    last[row][col] = key;
                }
                col += 1;
            }
        }
    }
    println!("{}", bell);
    for line in shown {
        let s = String::from_utf8(line).unwrap();
        let t = s.trim_end_matches('.');
        println!("{}", if t.is_empty() { "." } else { t });
    }
}
