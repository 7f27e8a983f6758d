// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: visited squares are kept in a list that is searched from the beginning each time.
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let words: Vec<&str> = input.split_whitespace().collect();
    let r: i32 = words[0].parse().unwrap();
    let c: i32 = words[1].parse().unwrap();
    let grid: Vec<Vec<char>> = words[2..].iter().map(|w| w.chars().collect()).collect();
    let mut visited: Vec<(i32, i32)> = Vec::new();
    let mut areas = vec![0; 26];
    let mut fields = 0;
    for i in 0..r {
        for j in 0..c {
            if visited.contains(&(i, j)) {
                continue;
            }
            let letter = grid[i as usize][j as usize];
            let mut field = vec![(i, j)];
            visited.push((i, j));
            let mut k = 0;
            let mut hidden = true;
            while k < field.len() {
                let (x, y) = field[k];
                k += 1;
                for (dx, dy) in [(0, 1), (1, 0), (0, -1), (-1, 0)] {
                    let (a, b) = (x + dx, y + dy);
                    if a < 0 || b < 0 || a >= r || b >= c {
                        hidden = false;
                        continue;
                    }
                    if grid[a as usize][b as usize] == letter && !visited.contains(&(a, b)) {
                        visited.push((a, b));
                        field.push((a, b));
                    }
                }
            }
            if hidden {
                fields += 1;
                areas[letter as usize - 'a' as usize] += field.len();
            }
        }
    }
    if fields == 0 {
        println!("0");
        return;
    }
    let most = *areas.iter().max().unwrap();
    let letter = areas.iter().position(|&x| x == most).unwrap();
    println!("{} {} {}", fields, (b'a' + letter as u8) as char, most);
}
