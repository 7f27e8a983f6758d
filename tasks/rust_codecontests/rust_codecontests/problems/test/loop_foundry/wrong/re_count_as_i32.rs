// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: reads the loop count as i32, so parsing panics for large counts.
use std::io::{self, Read};

const P: i64 = 1_000_000_007;
type M = [[i64; 5]; 5];

fn id() -> M {
    let mut m = [[0; 5]; 5];
    for i in 0..5 {
        m[i][i] = 1;
    }
    m
}

fn mul(a: M, b: M) -> M {
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
    let n: i32 = it.next().unwrap().parse().unwrap();
    let v: Vec<i64> = (0..4).map(|_| it.next().unwrap().parse().unwrap()).collect();
    let mut stack: Vec<(i32, M)> = vec![(1, id())];
    for _ in 0..n {
        let c = it.next().unwrap();
        if c == "loop" {
            let k: i32 = it.next().unwrap().parse().unwrap();
            stack.push((k, id()));
        } else if c == "end" {
            let (mut k, mut b) = stack.pop().unwrap();
            let mut t = stack.pop().unwrap();
            while k > 0 {
                if k % 2 == 1 {
                    t.1 = mul(b, t.1);
                }
                b = mul(b, b);
                k /= 2;
            }
            stack.push(t);
        } else {
            let x = (it.next().unwrap().as_bytes()[0] - b'a') as usize;
            let s = it.next().unwrap();
            let mut t = id();
            match c {
                "add" => t[x][(s.as_bytes()[0] - b'a') as usize] += 1,
                "swap" => t.swap(x, (s.as_bytes()[0] - b'a') as usize),
                "inc" => t[x][4] = s.parse().unwrap(),
                "mul" => t[x][x] = s.parse().unwrap(),
                _ => {
                    t[x][x] = 0;
                    t[x][4] = s.parse().unwrap();
                }
            }
            let top = stack.last_mut().unwrap();
            top.1 = mul(t, top.1);
        }
    }
    let m = stack[0].1;
    for i in 0..4 {
        let mut s = m[i][4];
        for j in 0..4 {
            s = (s + m[i][j] * v[j]) % P;
        }
        print!("{} ", s % P);
    }
    println!();
}
