// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let nums: Vec<i64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, m) = (nums[0] as usize, nums[1] as usize);
    let hours = &nums[2..2 + n];
    let period = &nums[2 + n..2 + 2 * n];
    let mut before: Vec<Vec<usize>> = vec![vec![]; n];
    for rule in nums[2 + 2 * n..2 + 2 * n + 2 * m].chunks(2) {
        before[rule[1] as usize - 1].push(rule[0] as usize - 1);
    }
    // 0: untouched, 1: on the stack, 2: finished at a known hour, 3: never fired
    let mut state = vec![0u8; n];
    let mut finish = vec![0i64; n];
    for s in 0..n {
        if state[s] != 0 {
            continue;
        }
        state[s] = 1;
        let mut stack = vec![(s, 0usize, false)];
        while let Some((v, i, mut never)) = stack.pop() {
            if i < before[v].len() {
                let a = before[v][i];
                if state[a] == 0 {
                    stack.push((v, i, never));
                    state[a] = 1;
                    stack.push((a, 0, false));
                } else {
                    never = never || state[a] != 2;
                    stack.push((v, i + 1, never));
                }
                continue;
            }
            if never {
                state[v] = 3;
            } else {
                let ready = before[v].iter().map(|&a| finish[a]).max().unwrap_or(0);
                let rest = ready % period[v];
                let start = if rest == 0 { ready } else { ready + period[v] - rest };
                finish[v] = start + hours[v];
                state[v] = 2;
            }
        }
    }
    let never = state.iter().filter(|&&s| s == 3).count();
    if never > 0 {
        println!("-1 {}", never);
        return;
    }
    let last = *finish.iter().max().unwrap();
    println!("{} {}", last, finish.iter().filter(|&&f| f == last).count());
}
