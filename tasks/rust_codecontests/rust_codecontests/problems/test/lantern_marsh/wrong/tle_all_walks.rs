// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it tries walks by depth-first search with backtracking, which is exponential.
use std::io::{self, Read};

struct Marsh {
    grid: Vec<Vec<u8>>,
    full: i32,
    best: (i32, i32),
}

fn walk(m: &mut Marsh, on_path: &mut Vec<Vec<i32>>, i: usize, j: usize, oil: i32, time: i32) {
    if m.best.0 != -1 && time > m.best.0 {
        return;
    }
    if m.grid[i][j] == b'G' {
        if m.best.0 == -1 || time < m.best.0 || oil > m.best.1 {
            m.best = (time, oil);
        }
        return;
    }
    let before = on_path[i][j];
    if oil <= before {
        return;
    }
    on_path[i][j] = oil;
    if m.grid[i][j] == b'o' && oil < m.full {
        walk(m, on_path, i, j, m.full, time + 1);
    }
    let (r, c) = (m.grid.len(), m.grid[0].len());
    let mut next = Vec::new();
    if i + 1 < r {
        next.push((i + 1, j));
    }
    if j + 1 < c {
        next.push((i, j + 1));
    }
    if i > 0 {
        next.push((i - 1, j));
    }
    if j > 0 {
        next.push((i, j - 1));
    }
    for (a, b) in next {
        let cell = m.grid[a][b];
        let left = if cell == b'~' { oil - 1 } else { oil };
        if cell != b'#' && left >= 0 {
            walk(m, on_path, a, b, left, time + 1);
        }
    }
    on_path[i][j] = before;
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let words: Vec<&str> = input.split_whitespace().collect();
    let full: i32 = words[2].parse().unwrap();
    let k: i32 = words[3].parse().unwrap();
    let grid: Vec<Vec<u8>> = words[4..].iter().map(|x| x.as_bytes().to_vec()).collect();
    let mut on_path: Vec<Vec<i32>> = grid.iter().map(|row| vec![-1; row.len()]).collect();
    let (mut si, mut sj) = (0, 0);
    for (i, row) in grid.iter().enumerate() {
        if let Some(j) = row.iter().position(|&x| x == b'S') {
            si = i;
            sj = j;
        }
    }
    let mut m = Marsh { grid, full, best: (-1, 0) };
    walk(&mut m, &mut on_path, si, sj, k, 0);
    if m.best.0 == -1 {
        println!("-1");
    } else {
        println!("{} {}", m.best.0, m.best.1);
    }
}
