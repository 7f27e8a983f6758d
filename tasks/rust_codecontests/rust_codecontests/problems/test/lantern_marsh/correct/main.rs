// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::VecDeque;
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let r: usize = it.next().unwrap().parse().unwrap();
    let c: usize = it.next().unwrap().parse().unwrap();
    let f: usize = it.next().unwrap().parse().unwrap();
    let k: usize = it.next().unwrap().parse().unwrap();
    let grid: Vec<Vec<u8>> = (0..r).map(|_| it.next().unwrap().bytes().collect()).collect();
    let mut start = (0, 0);
    let mut goal = (0, 0);
    for i in 0..r {
        for j in 0..c {
            if grid[i][j] == b'S' {
                start = (i, j);
            }
            if grid[i][j] == b'G' {
                goal = (i, j);
            }
        }
    }
    let mut dist = vec![vec![vec![-1i32; f + 1]; c]; r];
    let mut queue = VecDeque::new();
    dist[start.0][start.1][k] = 0;
    queue.push_back((start.0, start.1, k));
    while let Some((i, j, oil)) = queue.pop_front() {
        let d = dist[i][j][oil];
        if grid[i][j] == b'o' && dist[i][j][f] == -1 {
            dist[i][j][f] = d + 1;
            queue.push_back((i, j, f));
        }
        for (di, dj) in [(0i32, 1i32), (1, 0), (0, -1), (-1, 0)] {
            let ni = i as i32 + di;
            let nj = j as i32 + dj;
            if ni < 0 || nj < 0 || ni >= r as i32 || nj >= c as i32 {
                continue;
            }
            let (a, b) = (ni as usize, nj as usize);
            if grid[a][b] == b'#' {
                continue;
            }
            let mut left = oil;
            if grid[a][b] == b'~' {
                if oil == 0 {
                    continue;
                }
                left -= 1;
            }
            if dist[a][b][left] == -1 {
                dist[a][b][left] = d + 1;
                queue.push_back((a, b, left));
            }
        }
    }
    let mut best = (i32::MAX, 0);
    for oil in 0..=f {
        let d = dist[goal.0][goal.1][oil];
        if d != -1 && d <= best.0 {
            best = (d, oil);
        }
    }
    if best.0 == i32::MAX {
        println!("-1");
    } else {
        println!("{} {}", best.0, best.1);
    }
}
