// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: multiplies a finished loop to the wrong side of what came before it.
use std::io::{self, Read};

const P: u64 = 1_000_000_007;
type M = [[u64; 5]; 5];

fn id() -> M {
    let mut m = [[0; 5]; 5];
    for i in 0..5 {
        m[i][i] = 1;
    }
    m
}

fn mul(a: &M, b: &M) -> M {
    let mut c = [[0; 5]; 5];
    for i in 0..5 {
        for j in 0..5 {
            for k in 0..5 {
                c[i][j] = (c[i][j] + a[i][k] * b[k][j]) % P;
            }
        }
    }
    c
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut start = vec![0u64; 4];
    for i in 0..4 {
        start[i] = it.next().unwrap().parse().unwrap();
    }
    start.push(1);
    let mut stack: Vec<(u64, M)> = vec![(1, id())];
    for _ in 0..n {
        let c = it.next().unwrap();
        if c == "loop" {
            stack.push((it.next().unwrap().parse().unwrap(), id()));
        } else if c == "end" {
            let (mut k, mut b) = stack.pop().unwrap();
            let mut r = id();
            while k > 0 {
                if k % 2 == 1 {
                    r = mul(&r, &b);
                }
                b = mul(&b, &b);
                k /= 2;
            }
            let top = stack.last_mut().unwrap();
            top.1 = mul(&top.1, &r);
        } else {
            let x = (it.next().unwrap().as_bytes()[0] - b'a') as usize;
            let s = it.next().unwrap();
            let mut t = id();
            if c == "add" {
                t[x][(s.as_bytes()[0] - b'a') as usize] += 1;
            } else if c == "swap" {
                t.swap(x, (s.as_bytes()[0] - b'a') as usize);
            } else {
                let v: u64 = s.parse().unwrap();
                match c {
                    "inc" => t[x][4] = v,
                    "mul" => t[x][x] = v,
                    _ => {
                        t[x][x] = 0;
                        t[x][4] = v;
                    }
                }
            }
            let top = stack.last_mut().unwrap();
            top.1 = mul(&t, &top.1);
        }
    }
    let m = stack[0].1;
    for i in 0..4 {
        let mut s = 0;
        for j in 0..5 {
            s = (s + m[i][j] * start[j]) % P;
        }
        print!("{} ", s);
    }
    println!();
}
