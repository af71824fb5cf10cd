/** How amounts, counts and times are shown. */
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

export const percent = (value: number | null | undefined, digits = 2): string =>
  value == null || !Number.isFinite(value) ? NONE : `${(100 * value).toFixed(digits)} %`;

/** In UTC, as the service's reports and logs have it. */
export const time = (iso: string | null | undefined): string =>
  iso == null ? NONE : iso.replace('T', ' ').replace(/\.\d+Z$|Z$/, '');

/** Bytes as MiB. */
export const megabytes = (bytes: number | null): string =>
  bytes === null ? NONE : `${(bytes / 1_048_576).toFixed(1)} MiB`;

/** A rate per second. */
export const rate = (value: number | undefined): string =>
  value === undefined ? NONE : value >= 100 ? COUNT.format(value) : value.toFixed(1);

/** A latency by the bound that it keeps, in milliseconds. */
export const within = (seconds: number | null | undefined): string =>
  seconds == null ? NONE : `≤ ${Number((1000 * seconds).toFixed(1))} ms`;
