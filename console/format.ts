/** Formats amounts, counts and times for display. */
const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const USD = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 6,
});

export const NONE = '–';

export const count = (value: number | null | undefined): string =>
  value == null ? NONE : COUNT.format(value);

export const usd = (value: number | null | undefined): string => (value == null ? NONE : USD.format(value));

/** Formats an estimated amount, rounded to cents. */
export const estimatedUsd = (value: number): string => USD.format(Math.round(100 * value) / 100);

export const percent = (value: number | null | undefined, digits = 2): string =>
  value == null || !Number.isFinite(value) ? NONE : `${(100 * value).toFixed(digits)} %`;

/** Formats a time in UTC, as in the reports and logs of the service. */
export const time = (iso: string | null | undefined): string =>
  iso == null ? NONE : iso.replace('T', ' ').replace(/\.\d+Z$|Z$/, '');

/** Formats a number of bytes in MiB. */
export const megabytes = (bytes: number | null): string =>
  bytes === null ? NONE : `${(bytes / 1_048_576).toFixed(1)} MiB`;

/** Formats a rate, such as spins per second. */
export const rate = (value: number | undefined): string =>
  value === undefined ? NONE : value >= 100 ? COUNT.format(value) : value.toFixed(1);

/** Formats the upper bound of a latency, in ms. */
export const within = (seconds: number | null | undefined): string =>
  seconds == null ? NONE : `≤ ${Number((1000 * seconds).toFixed(1))} ms`;
