// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: tries all subsets of the goods recursively.
use std::io::{self, Read};

struct Good {
    stall: usize,
    cost: i64,
    joy: i64,
}

fn go(
    i: usize,
    goods: &[Good],
    fees: &[i64],
    open: &mut Vec<bool>,
    money: i64,
    coupon: bool,
) -> i64 {
    if i == goods.len() {
        return 0;
    }
    let g = &goods[i];
    let mut best = go(i + 1, goods, fees, open, money, coupon);
    let was_open = open[g.stall];
    let fee = if was_open { 0 } else { fees[g.stall] };
    open[g.stall] = true;
    if money >= fee + g.cost {
        best = best.max(g.joy + go(i + 1, goods, fees, open, money - fee - g.cost, coupon));
    }
    let half = (g.cost + 1) / 2;
    if coupon && money >= fee + half {
        best = best.max(g.joy + go(i + 1, goods, fees, open, money - fee - half, false));
    }
    open[g.stall] = was_open;
    best
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace().map(|x| x.parse::<i64>().unwrap());
    let n = it.next().unwrap();
    let s = it.next().unwrap();
    let m = it.next().unwrap();
    let fees: Vec<i64> = (0..s).map(|_| it.next().unwrap()).collect();
    let mut goods = Vec::new();
    for _ in 0..n {
        let stall = it.next().unwrap() as usize - 1;
        let cost = it.next().unwrap();
        let joy = it.next().unwrap();
        goods.push(Good { stall, cost, joy });
    }
    let mut open = vec![false; s as usize];
    println!("{}", go(0, &goods, &fees, &mut open, m, true));
}
