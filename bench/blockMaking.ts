/**
 * How fast one core makes blocks: keystream, draw, check and commitment, of each sample PAR sheet. Prints one line of
 * JSON. `node dist/bench/blockMaking.js [outcomes per block] [seconds per sheet]`
 */

import { readFileSync } from 'node:fs';
import { checkParSheet } from '../src/domain/par.js';
import { makeBlock } from '../workers/makeBlock.js';

const SHEETS = ['classic-3-reel', 'double-strike', 'five-reel-wild', 'penny-sub-cent'];
// The sample's stated RTP isn't the one its combinations give, so an upload of it is refused as it stands.
const COMPUTED_RTP: Readonly<Record<string, number>> = { 'five-reel-wild': 0.7775 };

const count = Number(process.argv[2] ?? 1_000_000);
const secondsPerSheet = Number(process.argv[3] ?? 2);

function outcomesPerSecond(name: string): number {
  const file = new URL(`../../test/par-sheets/${name}.json`, import.meta.url);
  const body = JSON.parse(readFileSync(file, 'utf8'));
  const checked = checkParSheet({ ...body, certifiedRtp: COMPUTED_RTP[name] ?? body.certifiedRtp });
  if ('faults' in checked) throw new Error(`${name}: ${JSON.stringify(checked.faults)}`);
  const { sheet } = checked;
  for (let warmUp = 0; warmUp < 5; warmUp++) makeBlock({ sheet, gameId: 1, fromIndex: 0, count });
  const startedMs = performance.now();
  const untilMs = startedMs + secondsPerSheet * 1000;
  let made = 0;
  while (performance.now() < untilMs) {
    makeBlock({ sheet, gameId: 1, fromIndex: made, count });
    made += count;
  }
  return Math.round(made / ((performance.now() - startedMs) / 1000));
}

const results = Object.fromEntries(SHEETS.map((name) => [name, outcomesPerSecond(name)]));
console.log(
  JSON.stringify({ bench: 'blockMaking', node: process.version, count, outcomesPerSecond: results }),
);
