// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads only one line of keys, but the keys may be broken into several lines.
use std::io;

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let w: usize = line.trim().parse().unwrap();
    let mut keys = String::new();
    io::stdin().read_line(&mut keys).unwrap();
    let mut sheet = vec![vec!['.'; w]];
    let mut row = 0;
    let mut col = 0;
    let mut bell = 0;
    for key in keys.trim().chars() {
        match key {
            '<' => {
                if col > 0 {
                    col -= 1;
                }
            }
            '^' => {
                if row > 0 {
                    row -= 1;
                }
            }
            '/' => {
                row += 1;
                col = 0;
                if row >= sheet.len() {
                    sheet.push(vec!['.'; w]);
                }
            }
            c => {
                if col == w {
                    bell += 1;
                    continue;
                }
                if c != '_' {
                    let old = sheet[row][col];
                    sheet[row][col] = if old == '.' || old == c { c } else { '#' };
                }
                col += 1;
            }
        }
    }
    println!("{}", bell);
    for line in sheet {
        let s: String = line.into_iter().collect();
        let t = s.trim_end_matches('.');
        println!("{}", if t.is_empty() { "." } else { t });
    }
}
