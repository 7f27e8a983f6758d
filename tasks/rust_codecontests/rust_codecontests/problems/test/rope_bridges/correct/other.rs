// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

const LOG: usize = 14;

#[derive(Clone)]
struct Island {
    group: usize,
    depth: usize,
    far: u64,
    up: [usize; LOG],
    near: Vec<(usize, u64)>,
}

fn hang(islands: &mut Vec<Island>, child: usize, parent: usize, w: u64, group: usize) -> Vec<usize> {
    let mut stack = vec![(child, parent, w)];
    let mut moved = Vec::new();
    while let Some((v, from, length)) = stack.pop() {
        islands[v].group = group;
        islands[v].depth = islands[from].depth + 1;
        islands[v].far = islands[from].far + length;
        islands[v].up[0] = from;
        for k in 1..LOG {
            let middle = islands[v].up[k - 1];
            islands[v].up[k] = islands[middle].up[k - 1];
        }
        moved.push(v);
        for &(u, length) in &islands[v].near {
            if u != from {
                stack.push((u, v, length));
            }
        }
    }
    moved
}

fn distance(islands: &[Island], a: usize, b: usize) -> u64 {
    let (mut x, mut y) = (a, b);
    if islands[x].depth < islands[y].depth {
        std::mem::swap(&mut x, &mut y);
    }
    for k in (0..LOG).rev() {
        if islands[x].depth >= islands[y].depth + (1 << k) {
            x = islands[x].up[k];
        }
    }
    for k in (0..LOG).rev() {
        if islands[x].up[k] != islands[y].up[k] {
            x = islands[x].up[k];
            y = islands[y].up[k];
        }
    }
    if x != y {
        x = islands[x].up[0];
    }
    islands[a].far + islands[b].far - 2 * islands[x].far
}

fn main() {
    let stdin = io::stdin();
    let mut lines = stdin.lock().lines().map(|l| l.unwrap());
    let head: Vec<usize> = lines.next().unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = head[0];
    let mut islands: Vec<Island> =
        (0..n).map(|i| Island { group: i, depth: 0, far: 0, up: [i; LOG], near: vec![] }).collect();
    let mut size = vec![1usize; n];
    let mut ends: Vec<(usize, usize)> = (0..n).map(|i| (i, i)).collect();
    for _ in 0..head[1] {
        let line = lines.next().unwrap();
        let parts: Vec<&str> = line.split_whitespace().collect();
        let u = parts[1].parse::<usize>().unwrap() - 1;
        if parts[0] == "F" {
            let (x, y) = ends[islands[u].group];
            println!("{}", distance(&islands, u, x).max(distance(&islands, u, y)));
            continue;
        }
        let v = parts[2].parse::<usize>().unwrap() - 1;
        let w: u64 = parts[3].parse().unwrap();
        let (g, h) = (islands[u].group, islands[v].group);
        if g == h {
            continue;
        }
        let (large, small, top, low) = if size[g] >= size[h] { (g, h, u, v) } else { (h, g, v, u) };
        hang(&mut islands, low, top, w, large);
        islands[u].near.push((v, w));
        islands[v].near.push((u, w));
        size[large] += size[small];
        let four = [ends[g].0, ends[g].1, ends[h].0, ends[h].1];
        let mut best = (four[0], four[0], 0);
        for i in 0..4 {
            for j in 0..i {
                let d = distance(&islands, four[i], four[j]);
                if d > best.2 {
                    best = (four[i], four[j], d);
                }
            }
        }
        ends[large] = (best.0, best.1);
    }
}
