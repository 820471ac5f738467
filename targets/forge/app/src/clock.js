// The clock of one invocation: milliseconds since 1970 with a fraction.

// The wall clock tells whole milliseconds and performance.now() the fraction. The
// latter falls behind while the platform freezes an isolate between invocations,
// and drifts, so its origin is moved to keep the two within one millisecond.
let origin = performance.timeOrigin;

export function now() {
  const earliest = Date.now();
  const fine = origin + performance.now();
  const latest = Date.now() + 1;
  const held = Math.min(Math.max(fine, earliest), latest);
  origin += held - fine;
  return held;
}

// A timer may fire a little early or late; the last stretch is waited out awake.
const awake = 2;

// until waits for an instant and gives the time at which it ended, which is never
// before it. An instant that is undefined has passed.
export async function until(instant) {
  for (;;) {
    const time = now();
    const left = instant - time;
    if (!(left > 0)) return time;
    if (left > awake) await new Promise((resolve) => setTimeout(resolve, left - awake));
  }
}
