import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The files that take longest, longest first: none of them is left alone at the end. The first two wait for a minute to begin,
 * which costs nothing while others work.
 */
const LONGEST = [
  'model',
  'limits',
  'bounds',
  'recovery',
  'audit',
  'start',
  'embedded',
  'recoverCommand',
  'acknowledgement',
  'raffles',
  'webhookCrash',
  'cuts',
  'shutdown',
  'failpoints',
  'recoveryAtScale',
  'outages',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    // `npm run mutation` takes a minute of its own.
    include: process.env.TESTS === 'mutation' ? ['test/mutation/mutation.ts'] : ['test/**/*.test.ts'],
    globalSetup: ['test/support/stores.ts'],
    pool: 'forks',
    // A worker loads the program once, not once for each file: that was a tenth of all the time.
    isolate: false,
    // On two cores: much of the time they wait for a disk, a lease or a deadline.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
