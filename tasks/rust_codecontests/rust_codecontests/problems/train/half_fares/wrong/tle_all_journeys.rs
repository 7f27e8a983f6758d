// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it tries all journeys by recursion.
use std::io::{self, Read};

struct Sea {
    adj: Vec<Vec<(usize, u64)>>,
    t: usize,
    goal: usize,
    best: Option<(u64, usize)>,
}

fn travel(sea: &mut Sea, on_way: &mut Vec<u32>, v: usize, coins: u64, used: usize, last: bool) {
    if let Some(best) = sea.best {
        if (coins, used) >= best {
            return;
        }
    }
    if v == sea.goal {
        sea.best = Some((coins, used));
        return;
    }
    if on_way[v] > 2 {
        return;
    }
    on_way[v] += 1;
    for i in 0..sea.adj[v].len() {
        let (u, w) = sea.adj[v][i];
        if !last && used < sea.t {
            travel(sea, on_way, u, coins + w / 2, used + 1, true);
        }
        travel(sea, on_way, u, coins + w, used, false);
    }
    on_way[v] -= 1;
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let nums: Vec<u64> = input.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = nums[0] as usize;
    let mut adj = vec![Vec::new(); n];
    for row in nums[3..].chunks(3) {
        let (a, b) = (row[0] as usize - 1, row[1] as usize - 1);
        adj[a].push((b, row[2]));
        adj[b].push((a, row[2]));
    }
    let mut sea = Sea { adj, t: nums[2] as usize, goal: n - 1, best: None };
    let mut on_way = vec![0; n];
    travel(&mut sea, &mut on_way, 0, 0, 0, false);
    match sea.best {
        Some((coins, used)) => println!("{} {}", coins, used),
        None => println!("-1"),
    }
}
