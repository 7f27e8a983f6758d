// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: indexes a String by an integer and assigns to the character.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut parts = input.split_whitespace();
    let w: usize = parts.next().unwrap().parse().unwrap();
    let keys: String = parts.collect();
    let mut sheet: Vec<String> = vec![".".repeat(w)];
    let mut row = 0;
    let mut col = 0;
    let mut bell = 0;
    for key in keys.chars() {
        match key {
            '<' => col = if col > 0 { col - 1 } else { 0 },
            '^' => row = if row > 0 { row - 1 } else { 0 },
            '/' => {
                row += 1;
                col = 0;
                if row == sheet.len() {
                    sheet.push(".".repeat(w));
                }
            }
            _ if col == w => bell += 1,
            '_' => col += 1,
            c => {
                if sheet[row][col] == '.' {
                    sheet[row][col] = c;
                } else if sheet[row][col] != c {
                    sheet[row][col] = '#';
                }
                col += 1;
            }
        }
    }
    println!("{}", bell);
    for line in sheet {
        println!("{}", line.trim_end_matches('.'));
    }
}
