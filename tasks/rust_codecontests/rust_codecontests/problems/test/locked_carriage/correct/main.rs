// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_ascii_whitespace();
    let w: usize = it.next().unwrap().parse().unwrap();
    let mut sheet: Vec<Vec<u8>> = vec![vec![b'.'; w]];
    let (mut row, mut col, mut bell) = (0usize, 0usize, 0u32);
    for key in it.flat_map(|s| s.bytes()) {
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
            _ if col == w => bell += 1,
            b'_' => col += 1,
            _ => {
                let cell = &mut sheet[row][col];
                if *cell == b'.' {
                    *cell = key;
                } else if *cell != key {
                    *cell = b'#';
                }
                col += 1;
            }
        }
    }
    let mut out = format!("{}\n", bell);
    for line in &sheet {
        let end = line.iter().rposition(|&c| c != b'.').map_or(1, |p| p + 1);
        out.push_str(std::str::from_utf8(&line[..end]).unwrap());
        out.push('\n');
    }
    print!("{}", out);
}
