#![allow(dead_code)]
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};

/// Documentation /* with a mark */.
struct Pair<'a, T: ?Sized>(&'a T, (i32, (f64, u8)));

impl<'a, T: Display + ?Sized> Display for Pair<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! sum {
    ($($x:expr),* $(,)?) => {{ let mut s = 0; $(s += $x;)* s }};
}

mod inner {
    pub(crate) use std::cmp::Ordering;
    pub fn r#fn(x: u8) -> Ordering { x.cmp(&0x1e) }
}

fn main() {
    let x: i32 = -3; /* a /* nested */ comment */
    let y = if x< -2 { -2 } else { 0 };
    let nested: Vec<Vec<i32>>= vec![vec![1, 2], vec![3]];
    let map: HashMap<u8, BTreeMap<u8, Vec<u8>>> = HashMap::new();
    let t = ((1, 5), 2.5e1_f64);
    let both = |a: &bool| -> bool { *a&&!map.contains_key(&1)||false };
    let closure = || 7u64 << 1 >> 1;
    print!("{} {} {} {} {:?}e1 ", x, y, 1.5f32, 1e1 as i32 * 2, t.1 / 10.);
    print!("{} {} {} {:?} ", both(&true), closure(), "/*no*/", "b\"q\"".len());
    print!("{} {} {} ", sum!(1, 2, 3,), '\'', nested.iter().flat_map(|v| v.iter()).filter(|&&v| v >= 1).count());
    let mut n = 1_2;
    'outer: for i in 0..=3 {
        for _ in (0..).take(2) {
            if i == 2 { break 'outer; }
            n ^= 0; n <<= 0; n |= 0b0;
        }
    }
    print!("{} {} {} ", n, t.0.0, (1..10).rev().next().unwrap());
    let Pair(name, (_, (half, five))) = Pair("ok", (1, (0.5, b'\x05')));
    print!("{} {} {} ", Pair(name, (0, (0.0, 0))), half, five);
    print!("{} {} {} ", Pair("0", (1, (1., 1))), r#"5"#, r"0");
    match inner::r#fn(five) {
        inner::Ordering::Less if ('a'..='z').contains(&'b') => print!("{} ", t.0 .1),
        _ => print!("no"),
    }
    println!("{}", b"12".iter().map(|&c| c as char).collect::<String>());
}
