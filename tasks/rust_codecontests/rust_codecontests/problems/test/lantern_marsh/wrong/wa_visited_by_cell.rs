// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it marks cells as visited without regard to the oil left, so a later arrival with more oil is lost.
use std::collections::VecDeque;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let f: i32 = it.next().unwrap().parse().unwrap();
    let k: i32 = it.next().unwrap().parse().unwrap();
    let grid: Vec<Vec<char>> = (0..r).map(|_| it.next().unwrap().chars().collect()).collect();
    let mut visited = vec![vec![false; c]; r];
    let mut filled = vec![vec![false; c]; r];
    let mut queue = VecDeque::new();
    for i in 0..r {
        for j in 0..c {
            if grid[i][j] == 'S' {
                visited[i][j] = true;
                queue.push_back((i, j, k, 0));
            }
        }
    }
    let dirs: [(i32, i32); 4] = [(0, 1), (1, 0), (0, -1), (-1, 0)];
    while let Some((i, j, oil, d)) = queue.pop_front() {
        if grid[i][j] == 'G' {
            println!("{} {}", d, oil);
            return;
        }
        if grid[i][j] == 'o' && !filled[i][j] && oil < f {
            filled[i][j] = true;
            queue.push_back((i, j, f, d + 1));
        }
        for (di, dj) in dirs.iter() {
            let ni = i as i32 + di;
            let nj = j as i32 + dj;
            if ni < 0 || nj < 0 || ni >= r as i32 || nj >= c as i32 {
                continue;
            }
            let (ni, nj) = (ni as usize, nj as usize);
            if visited[ni][nj] || grid[ni][nj] == '#' {
                continue;
            }
            let left = if grid[ni][nj] == '~' { oil - 1 } else { oil };
            if left < 0 {
                continue;
            }
            visited[ni][nj] = true;
            queue.push_back((ni, nj, left, d + 1));
        }
    }
    println!("-1");
}
