// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::BTreeMap;
use std::io::{self, BufRead};

fn main() {
    let mut lines = io::stdin().lock().lines().map(|l| l.unwrap());
    let width: i32 = lines.next().unwrap().trim().parse().unwrap();
    let mut cells: BTreeMap<(i32, i32), char> = BTreeMap::new();
    let (mut y, mut x, mut lowest, mut bell) = (0i32, 0i32, 0i32, 0u32);
    for line in lines {
        for key in line.trim().chars() {
            if key == '<' {
                x = (x - 1).max(0);
            } else if key == '^' {
                y = (y - 1).max(0);
            } else if key == '/' {
                y += 1;
                x = 0;
                lowest = lowest.max(y);
            } else if x >= width {
                bell += 1;
            } else {
                if key != '_' {
                    cells
                        .entry((y, x))
                        .and_modify(|old| {
                            if *old != key {
                                *old = '#';
                            }
                        })
                        .or_insert(key);
                }
                x += 1;
            }
        }
    }
    let mut sheet = vec![String::new(); lowest as usize + 1];
    for ((row, col), sign) in cells {
        let line = &mut sheet[row as usize];
        while line.len() < col as usize {
            line.push('.');
        }
        line.push(sign);
    }
    println!("{}", bell);
    let shown: Vec<&str> = sheet.iter().map(|l| if l.is_empty() { "." } else { l.as_str() }).collect();
    println!("{}", shown.join("\n"));
}
