/**
 * Computes the power of a real signal at each frequency by the fast Fourier transform (Cooley–Tukey, radix 2,
 * in place).
 */

interface Plan {
  readonly size: number;
  readonly cosines: Float64Array;
  readonly sines: Float64Array;
  readonly reversed: Uint32Array;
  readonly imaginary: Float64Array;
  readonly power: Float64Array;
}
let plan: Plan | undefined;

function planOf(size: number): Plan {
  if (plan?.size === size) return plan;
  const half = size / 2;
  const bits = Math.log2(size);
  const reversed = new Uint32Array(size);
  for (let i = 0; i < size; i++) {
    let turned = 0;
    for (let bit = 0; bit < bits; bit++) turned |= ((i >> bit) & 1) << (bits - 1 - bit);
    reversed[i] = turned;
  }
  plan = {
    size,
    cosines: Float64Array.from({ length: half }, (_, i) => Math.cos((2 * Math.PI * i) / size)),
    sines: Float64Array.from({ length: half }, (_, i) => -Math.sin((2 * Math.PI * i) / size)),
    reversed,
    imaginary: new Float64Array(size),
    power: new Float64Array(half + 1),
  };
  return plan;
}

/**
 * Computes |Σ x·e^(−2πi·jk/n)|² for k from 0 to n/2.
 * @param signal its length must be a power of two; it is overwritten
 * @returns a buffer that the next call overwrites
 */
export function fourierPower(signal: Float64Array): Float64Array {
  const size = signal.length;
  const { cosines, sines, reversed, imaginary, power } = planOf(size);
  imaginary.fill(0);
  for (let i = 0; i < size; i++) {
    const j = reversed[i]!;
    if (j <= i) continue;
    const value = signal[i]!;
    signal[i] = signal[j]!;
    signal[j] = value;
  }
  for (let half = 1; half < size; half *= 2) {
    const stride = size / (2 * half);
    for (let start = 0; start < size; start += 2 * half) {
      for (let k = 0; k < half; k++) {
        const low = start + k;
        const high = low + half;
        const cosine = cosines[k * stride]!;
        const sine = sines[k * stride]!;
        const real = signal[high]! * cosine - imaginary[high]! * sine;
        const other = signal[high]! * sine + imaginary[high]! * cosine;
        signal[high] = signal[low]! - real;
        imaginary[high] = imaginary[low]! - other;
        signal[low]! += real;
        imaginary[low]! += other;
      }
    }
  }
  for (let k = 0; k < power.length; k++) power[k] = signal[k]! ** 2 + imaginary[k]! ** 2;
  return power;
}
