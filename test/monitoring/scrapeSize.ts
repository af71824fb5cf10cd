/** Measures the size and cost of a scrape with many games. */
import type { Cleanup } from '../support/cleanup.js';
import { constants } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { pause, until } from '../support/wait.js';
import { openArena, type Service } from './arena.js';

const MADE_AT_ONCE = 16;
const SCRAPES = 50;
const PLAYABLE_WITHIN_MS = 200_000;
/** Processor time in seconds that an idle worker may use in a second, including one scrape. */
const QUIET_CPU_SECONDS = 0.15;
const QUIET_WITHIN_MS = 60_000;

/** Waits until the worker is idle. After a start it reads every queue from both stores. */
const quiet = (service: Service): Promise<void> =>
  until(
    async () => {
      const before = gaugeOf(await service.scrape(), 'process_cpu_seconds_total');
      await pause(1000);
      return gaugeOf(await service.scrape(), 'process_cpu_seconds_total') - before < QUIET_CPU_SECONDS;
    },
    'the worker is quiet',
    QUIET_WITHIN_MS,
  );

const gaugeOf = (text: string, name: string): number =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);

/**
 * Registers this many games. Scrapes their worker with the default number of time series, and then with all
 * time series.
 */
export async function scrapeSize(
  games: number,
  cleanup: Cleanup,
  say: (line: string) => void,
): Promise<boolean> {
  if (!Number.isInteger(games) || games < 1) throw new Error('--games must be a whole number, 1 or more');
  const arena = await openArena(cleanup, {});
  const { api, workers, fronts } = arena;
  const partner = await api.newPartner('acme');
  const parSheetId = await api.addSheet(partner.key, parSheet('classic-3-reel'));
  let made = 0;
  await Promise.all(
    Array.from({ length: MADE_AT_ONCE }, async () => {
      for (let i = made++; i < games; i = made++) {
        await api.addGame(partner.key, parSheetId, `game-${i}`);
      }
    }),
  );
  const owner = workers[0]!;
  await until(
    async () => gaugeOf(await owner.scrape(), 'spindle_block_outcomes_total') >= games * 3 * 2048,
    'every game has its blocks',
    PLAYABLE_WITHIN_MS,
    500,
  );
  for (const metricsGamesMax of [100, games]) {
    await owner.stop();
    await workers[1]!.stop();
    await owner.start(constants({ metricsGamesMax }));
    await until(
      async () => gaugeOf(await owner.scrape(), 'spindle_games') === games,
      'the worker has every game',
      30_000,
      200,
    );
    await quiet(owner);
    for (const [name, service] of [
      ['worker', owner],
      ['http', fronts[0]!],
    ] as const) {
      for (let i = 0; i < SCRAPES; i++) await service.scrape();
      const before = gaugeOf(await service.scrape(), 'process_cpu_seconds_total');
      const times: number[] = [];
      let text = '';
      for (let i = 0; i < SCRAPES; i++) {
        const began = performance.now();
        text = await service.scrape();
        times.push(performance.now() - began);
      }
      times.sort((a, b) => a - b);
      const cpuMs =
        ((gaugeOf(await service.scrape(), 'process_cpu_seconds_total') - before) * 1000) / (SCRAPES + 1);
      const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
      say(
        `${metricsGamesMax} of ${games} games, ${name}: ${series} series, ${text.length} bytes, ` +
          `median ${times[SCRAPES / 2]!.toFixed(1)} ms, CPU ${cpuMs.toFixed(1)} ms a scrape`,
      );
    }
  }
  return true;
}
