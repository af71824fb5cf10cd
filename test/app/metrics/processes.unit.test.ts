/** Tests the metrics of a program with one process, and with several processes. */
import { expect, test } from 'vitest';
import { Metrics } from '../../../src/app/metrics/metrics.js';

test('metrics of a program with one process have no label for the process', async () => {
  const metrics = new Metrics();
  expect(await metrics.text()).toContain('\nspindle_spins_total 0\n');
  expect(await metrics.text()).not.toContain('process="');
});

test('the first process lists the series of all processes under one heading for each metric', async () => {
  const worker = new Metrics('worker');
  const frontEnd = new Metrics('front-end-1');
  frontEnd.gauge('only_here', 'Gauge of front ends', () => Number.NaN);
  frontEnd.dealt(250_000, 0);
  frontEnd.request('spin', 0.002, 200, undefined, undefined);
  worker.counters('of_another', 'Counter with its own label', () => [
    { labels: { process: 'front-end-1' }, value: 3 },
  ]);
  worker.others = async () => [await frontEnd.samples(), []];
  const lines = (await worker.text()).split('\n');
  const headings = lines.filter((line) => line.startsWith('# TYPE'));
  expect(new Set(headings).size).toBe(headings.length);
  expect(lines.filter((line) => line.startsWith('spindle_spins_total'))).toEqual([
    'spindle_spins_total{process="worker"} 0',
    'spindle_spins_total{process="front-end-1"} 1',
  ]);
  expect(lines).toContain('only_here{process="front-end-1"} Nan');
  expect(lines).toContain('of_another{process="front-end-1"} 3');
  expect(lines).toContain(
    'spindle_http_request_seconds_bucket{operation="spin",status="2xx",le="0.0025",process="front-end-1"} 1',
  );
  const series = lines.filter((line) => line !== '' && !line.startsWith('#'));
  expect(series.filter((line) => !line.includes('process="'))).toEqual([]);
});
