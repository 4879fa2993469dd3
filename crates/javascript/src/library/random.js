// Random numbers that a seed repeats.

/** One step of MurmurHash3's finalizer (fmix32): mixes the bits of 32. */
function mixed(bits) {
    let all = bits;
    all = Math.imul(all ^ (all >>> 16), 0x85ebca6b);
    all = Math.imul(all ^ (all >>> 13), 0xc2b2ae35);
    return (all ^ (all >>> 16)) >>> 0;
}

/** A function that gives numbers from 0 up to 1, the same ones for the same seed. */
export function seeded(seed) {
    const whole = Number.isFinite(seed) ? Math.trunc(seed) : 0;
    let state = mixed(whole | 0) ^ mixed(Math.trunc(whole / 2 ** 32) + 1);
    const next = () => mixed((state = (state + 0x9e3779b9) | 0));
    // 53 bits: 27 and 26 of two steps.
    return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}
