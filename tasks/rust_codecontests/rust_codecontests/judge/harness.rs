//! Runs one program on one test after another inside its sandbox, and reports the resource use of each run.
//!
//! Usage: `harness CONNECTION PROGRAM alone|shared`. The connection is `descriptor:N`, or the path of a socket. `alone`
//! means that all processes of this user, and all files in `/tmp` and `/dev/shm`, belong to the program, so the harness
//! kills and removes them after each test.
//!
//! The first byte that the harness sends reports that it has started. Numbers on the socket are little-endian.
//! A request: limits of CPU time in microseconds (u64), wall-clock time in milliseconds (u32), memory in MiB (u32) and
//! output in bytes (u32); size of the input in bytes (u64); the input.
//! A reply: wait status (i32); how the run ended (u32, an `End`); CPU time in microseconds (u64); wall-clock time in
//! microseconds without waits for a core (u64); peak memory in KiB (u64); sizes of stdout and of the end of stderr in
//! bytes (u32 each); stdout; the end of stderr.

use std::collections::HashMap;
use std::convert::TryInto; // not in the prelude of edition 2018
use std::ffi::{c_int, c_long, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{id, Command};
use std::time::{Duration, Instant};

const PR_SET_DUMPABLE: c_int = 4;
const PR_SET_CHILD_SUBREAPER: c_int = 36;
const PIDFD_OPEN: c_long = 434; // the same on every architecture
const SIGKILL: c_int = 9;
const F_SETFD: c_int = 2;
const FD_CLOEXEC: c_int = 1;
const POLLIN: i16 = 1;
const CPU: c_int = 0;
const FSIZE: c_int = 1;
const DATA: c_int = 2;
const STACK: c_int = 3;
const STACK_BYTES: u64 = 64 << 20;
const STDERR_KEPT: u64 = 2048;
/// Minimum interval between two checks of the CPU time. The kernel's own limit has a resolution of a second, and may
/// kill the program too early.
const LOOK: Duration = Duration::from_millis(5);
/// Maximum interval. A thread's state between two checks is inferred from its state at both, so they must be frequent.
const MAX_LOOK: Duration = Duration::from_millis(20);
const CPU_SLACK_S: u64 = 2;
/// The wall-clock limit is extended by the time that the program waits for a core, up to this many times the limit.
const PATIENCE: u32 = 8;

#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

/// `struct rusage` of 64-bit Linux.
#[repr(C)]
#[derive(Default)]
struct Usage {
    user: [i64; 2],
    system: [i64; 2],
    peak_kib: i64,
    others: [i64; 13],
}

#[repr(C)]
struct Poll {
    descriptor: c_int,
    events: i16,
    found: i16,
}

extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn getrlimit(resource: c_int, limit: *mut Limit) -> c_int;
    fn setrlimit(resource: c_int, limit: *const Limit) -> c_int;
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
    fn poll(descriptors: *mut Poll, count: u64, milliseconds: c_int) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn setsid() -> c_int;
    fn geteuid() -> u32;
    fn close(descriptor: c_int) -> c_int;
    fn fcntl(descriptor: c_int, command: c_int, ...) -> c_int;
}

#[repr(C)]
#[derive(Default)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

#[derive(Clone, Copy, Default)]
enum End {
    #[default]
    ByItself = 0,
    WallClock = 1,
    CpuTime = 2,
}

struct Request {
    cpu: Duration,
    wall: Duration,
    memory: u64,
    output: u64,
    input: Vec<u8>,
}

#[derive(Default)]
struct Report {
    status: c_int,
    end: End,
    cpu_us: u64,
    elapsed_us: u64,
    peak_kib: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let alone = arguments[3] == "alone";
    // SAFETY: these calls only read their arguments.
    unsafe {
        // As root, or next to other programs, killing all processes and removing all files would affect others. A
        // program can neither kill nor stop the first process of its namespace.
        assert!(!alone || (geteuid() != 0 && id() == 1), "not alone");
        assert_eq!(prctl(PR_SET_DUMPABLE, 0), 0);
        assert_eq!(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    }
    let mut judge = connect(&arguments[1])?;
    judge.write_all(b"+")?;
    let mounted = [entries("/tmp")?, entries("/dev/shm")?].concat();
    while let Some(request) = receive(&mut judge)? {
        let report = run(&arguments[2], &request, alone)?;
        send(&mut judge, &report)?;
        if alone {
            clear("/tmp", &mounted)?;
            clear("/dev/shm", &mounted)?;
        }
    }
    Ok(())
}

/// Returns the inherited connection `descriptor:N`, which programs will not inherit, or connects to a path.
fn connect(address: &str) -> io::Result<UnixStream> {
    let Some(number) = address.strip_prefix("descriptor:") else { return UnixStream::connect(address) };
    let descriptor: c_int = number.parse().expect("a number");
    // SAFETY: this process owns the descriptor, and nothing else uses it.
    unsafe {
        assert_eq!(fcntl(descriptor, F_SETFD, FD_CLOEXEC), 0);
        Ok(UnixStream::from_raw_fd(descriptor))
    }
}

/// Returns the next request, or nothing if the judge has no more.
fn receive(judge: &mut UnixStream) -> io::Result<Option<Request>> {
    let mut header = [0; 28];
    match judge.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let word = |at: usize| u64::from(u32::from_le_bytes(header[at..at + 4].try_into().unwrap()));
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
    let mut input = vec![0; long(20) as usize];
    judge.read_exact(&mut input)?;
    let (cpu, wall) = (Duration::from_micros(long(0)), Duration::from_millis(word(8)));
    Ok(Some(Request { cpu, wall, memory: word(12) << 20, output: word(16), input }))
}

fn send(judge: &mut UnixStream, report: &Report) -> io::Result<()> {
    let mut reply = Vec::with_capacity(40 + report.stdout.len() + report.stderr.len());
    reply.extend(report.status.to_le_bytes());
    reply.extend((report.end as u32).to_le_bytes());
    reply.extend(report.cpu_us.to_le_bytes());
    reply.extend(report.elapsed_us.to_le_bytes());
    reply.extend(report.peak_kib.to_le_bytes());
    reply.extend((report.stdout.len() as u32).to_le_bytes());
    reply.extend((report.stderr.len() as u32).to_le_bytes());
    reply.extend(&report.stdout);
    reply.extend(&report.stderr);
    judge.write_all(&reply)
}

/// Runs the program until it ends or reaches a limit, and kills all processes that it has started.
fn run(program: &str, request: &Request, alone: bool) -> io::Result<Report> {
    let (mut input, mut output, mut error) = (scratch()?, scratch()?, scratch()?);
    input.write_all(&request.input)?;
    input.rewind()?;
    let cpu_s = request.cpu.as_secs() + CPU_SLACK_S;
    let bounds = [
        (CPU, cpu_s, cpu_s),
        (FSIZE, request.output, request.output),
        (DATA, request.memory, request.memory),
        (STACK, STACK_BYTES, STACK_BYTES),
    ];
    let mut command = Command::new(program);
    command.env_clear().current_dir("/tmp");
    command.stdin(input).stdout(output.try_clone()?).stderr(error.try_clone()?);
    // SAFETY: only system calls are made between fork and exec.
    unsafe {
        command.pre_exec(move || {
            setsid();
            bounds.iter().try_for_each(|&(resource, soft, hard)| limit(resource, soft, hard))
        });
    }
    let child = command.spawn()?.id() as c_int;
    let (end, elapsed) = wait_for_end(child, request, alone);
    // SAFETY: only the program's processes get signals; in a sandbox, this user has no others.
    unsafe {
        kill(child, SIGKILL); // until the child is reaped, no other process has its PID
        kill(if alone { -1 } else { -child }, SIGKILL);
    }
    let mut report = Report { end, elapsed_us: elapsed.as_micros() as u64, ..Report::default() };
    reap(child, alone, &mut report);
    output.rewind()?;
    output.take(request.output).read_to_end(&mut report.stdout)?;
    let length = error.seek(SeekFrom::End(0))?;
    error.seek(SeekFrom::Start(length.saturating_sub(STDERR_KEPT)))?;
    error.take(STDERR_KEPT).read_to_end(&mut report.stderr)?;
    Ok(report)
}

/// Returns an empty file that has been unlinked.
fn scratch() -> io::Result<File> {
    let path = format!("/tmp/judge-{}", id());
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Sets a resource limit of this process, lowered to the present hard limit if necessary.
fn limit(resource: c_int, soft: u64, hard: u64) -> io::Result<()> {
    let mut limit = Limit { soft: 0, hard: 0 };
    // SAFETY: both calls use this structure, which lives long enough.
    unsafe {
        if getrlimit(resource, &mut limit) == 0 {
            limit = Limit { soft: soft.min(limit.hard), hard: hard.min(limit.hard) };
            if setrlimit(resource, &limit) == 0 {
                return Ok(());
            }
        }
    }
    Err(io::Error::last_os_error())
}

/// Waits until `child` ends or reaches a time limit; returns why the wait ended, and the wall-clock time without waits
/// for a core.
fn wait_for_end(child: c_int, request: &Request, alone: bool) -> (End, Duration) {
    let started = Instant::now();
    let usual = Priority::read(&fs::read_to_string("/proc/self/stat").unwrap_or_default());
    let mut waiting = Waiting { usual, ..Waiting::default() };
    // SAFETY: the descriptor is opened, used and closed only here.
    unsafe {
        let descriptor = syscall(PIDFD_OPEN, child, 0) as c_int;
        assert!(descriptor >= 0, "pidfd_open");
        let mut look = LOOK;
        let end = loop {
            let mut event = Poll { descriptor, events: POLLIN, found: 0 };
            if poll(&mut event, 1, look.as_millis() as c_int) > 0 {
                break End::ByItself;
            }
            let spent = cpu_time(child, alone);
            if spent > request.cpu {
                break End::CpuTime;
            }
            waiting.look(child, started.elapsed().saturating_sub(spent));
            let wall = request.wall + waiting.time.min(request.wall * PATIENCE);
            if started.elapsed() > wall {
                break End::WallClock;
            }
            // Several threads may use CPU time faster than the clock runs.
            look = ((request.cpu - spent) / 4).min(wall.saturating_sub(started.elapsed())).clamp(LOOK, MAX_LOOK);
        };
        close(descriptor);
        waiting.look(child, Duration::ZERO);
        (end, started.elapsed().saturating_sub(waiting.time))
    }
}

/// Returns the CPU time of `child`; if `alone`, also of all other processes that the program has now.
fn cpu_time(child: c_int, alone: bool) -> Duration {
    let mut sum = process_time(child);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten().filter(|_| alone) {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.parse().ok()).unwrap_or(child);
        if process != child && process != id() as c_int {
            sum += process_time(process);
        }
    }
    sum
}

fn process_time(process: c_int) -> Duration {
    let mut time = Time::default();
    // SAFETY: the call writes to the structure, which lives long enough. The clock is the process's CPUCLOCK_SCHED.
    let known = unsafe { clock_gettime((!process << 3) | 2, &mut time) } == 0;
    if known {
        Duration::new(time.seconds as u64, time.nanoseconds as u32)
    } else {
        Duration::ZERO
    }
}

/// The time in which a process was ready to run but waited for a core.
#[derive(Default)]
struct Waiting {
    /// The priority with which the program was started.
    usual: Option<Priority>,
    /// The sum, over the intervals between checks, of the longest wait of any thread.
    time: Duration,
    /// Whether the program has changed its own priority. Further waits then do not count.
    willing: bool,
    looked: Option<Instant>,
    threads: HashMap<OsString, Thread>,
}

/// The kernel's data about a thread.
#[derive(Default)]
struct Thread {
    ready: bool,
    ran: Duration,
    /// Time spent waiting for a core, without a wait that has not ended.
    waited: Duration,
    /// The line with the number of times that the thread has gone to sleep.
    slept: String,
}

impl Waiting {
    /// Checks all threads and updates `time`; if the kernel does not report waits, `time` is at least `otherwise`.
    fn look(&mut self, process: c_int, otherwise: Duration) {
        let now = Instant::now();
        let since = now - self.looked.replace(now).unwrap_or(now);
        let group = fs::read_to_string(format!("/proc/{process}/autogroup")).unwrap_or_default();
        self.willing |= !group.is_empty() && !group.trim_end().ends_with(" nice 0");
        let mut before = std::mem::take(&mut self.threads);
        let mut longest = None;
        for entry in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let read = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let stat = read("stat");
            self.willing |= Priority::read(&stat).is_some_and(|priority| Some(priority) != self.usual);
            let Some(thread) = Thread::read(&stat, &read("schedstat"), &read("status")) else { continue };
            let earlier = before.remove(&entry.file_name()).unwrap_or_default();
            longest = longest.max(Some(thread.waited_since(&earlier, since)));
            self.threads.insert(entry.file_name(), thread);
        }
        if !self.willing {
            self.time = longest.map_or(self.time.max(otherwise), |time| self.time + time);
        }
    }
}

impl Thread {
    /// Parses the files of a thread; returns nothing if the kernel does not report waits.
    fn read(stat: &str, times: &str, status: &str) -> Option<Self> {
        let mut times = times.split_whitespace().map_while(|word| word.parse().ok()).map(Duration::from_nanos);
        let (ran, waited) = (times.next()?, times.next()?);
        let slept = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap_or("").to_owned();
        Some(Self { ready: stat.rsplit(')').next()?.starts_with(" R"), ran, waited, slept })
    }

    /// Returns how long the thread has waited for a core after `earlier`, which was `since` ago.
    fn waited_since(&self, earlier: &Self, since: Duration) -> Duration {
        if self.ready && earlier.ready && self.slept == earlier.slept {
            // It was ready all the time, and may still wait. Time taken by a virtual machine's host counts as a wait.
            since.saturating_sub(self.ran.saturating_sub(earlier.ran))
        } else {
            self.waited.saturating_sub(earlier.waited)
        }
    }
}

/// A thread's scheduling priority.
#[derive(PartialEq)]
struct Priority {
    nice: String,
    policy: String,
}

impl Priority {
    /// Parses the text of `/proc/PID/stat`; returns nothing if the text is empty, because the thread has ended.
    fn read(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        Some(Self { nice: fields.get(16)?.to_string(), policy: fields.get(38)?.to_string() })
    }
}

/// Reaps `child` (if `alone`, also its orphans, which have been killed), and adds their resource use to the report.
fn reap(child: c_int, alone: bool, report: &mut Report) {
    loop {
        let (mut status, mut usage) = (0, Usage::default());
        // SAFETY: the call writes to both, and both live long enough.
        let ended = unsafe { wait4(if alone { -1 } else { child }, &mut status, 0, &mut usage) };
        if ended < 0 {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return;
        }
        for [seconds, microseconds] in [usage.user, usage.system] {
            report.cpu_us += (seconds * 1_000_000 + microseconds) as u64;
        }
        report.peak_kib = report.peak_kib.max(usage.peak_kib as u64);
        if ended == child {
            report.status = status;
        }
    }
}

fn entries(directory: &str) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

/// Empties a directory, except for the paths in `stay`.
fn clear(directory: &str, stay: &[PathBuf]) -> io::Result<()> {
    for path in entries(directory)? {
        if stay.contains(&path) {
            continue;
        }
        if path.symlink_metadata()?.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
