// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: it assumes that every round on the circle brings the same coins, although the chests alternate.
use std::io::{self, Read};

struct Castle {
    exits: Vec<usize>,
    coins: Vec<i64>,
    full: Vec<bool>,
    room: usize,
    total: i64,
}

impl Castle {
    fn visit(&mut self, room: usize) {
        self.room = room;
        if self.full[room] {
            self.total += self.coins[room];
        }
        self.full[room] = !self.full[room];
    }

    fn walk(&mut self, moves: i64) {
        for _ in 0..moves {
            self.visit(self.exits[self.room]);
        }
    }
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let nums: Vec<i64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let n = nums[0] as usize;
    let mut left = nums[1];
    let exits = nums[2..2 + n].iter().map(|&x| x as usize - 1).collect();
    let mut castle = Castle { exits, coins: nums[2 + n..].to_vec(), full: vec![true; n], room: 0, total: 0 };
    castle.visit(0);
    let warm = left.min(n as i64);
    castle.walk(warm);
    left -= warm;
    // the boy is on the circle now; two rounds bring every chest back into its state
    let mut round = 0;
    let mut v = castle.room;
    loop {
        v = castle.exits[v];
        round += 1;
        if v == castle.room {
            break;
        }
        if round > n as i64 {
            break;
        }
    }
    if left >= round {
        let before = castle.total;
        castle.walk(round);
        left -= round;
        let gain = castle.total - before;
        castle.total += gain * (left / round);
        left %= round;
    }
    castle.walk(left);
    println!("{} {}", castle.total, castle.room + 1);
}
