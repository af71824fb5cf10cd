/** The tests: those that need no server (`*.unit.test.ts`), and those that run the service on real stores. */
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest, longest first: none of them is left alone at the end. */
const LONGEST = `
  refusals limits bounds cluster embedded positionFile failpoints partnerSide signals start
  cuts shutdown audit monitoring recovery adjustments everything model recoverCommand moreCells
  acknowledgement raffles takeover idempotency bindingTimes cli communalKills postgresDurability roundKills freedBlocks
  answeredEntries revocation webhookCrash moveLocks console communal badInput sharing wire restored
  outages killed apiVersions strangers ledger email rounds port money webhookSnippets
  exact logs spinsByTime webhooks webhookEvents
`
  .trim()
  .split(/\s+/);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at < 0 ? LONGEST.length : at;
    };
    // A worker loads the program anew where its next file is of another project.
    const projects = ['tidy', 'unit', 'node-http', 'service'];
    const turn = ({ project }: TestSpecification): number => projects.indexOf(project.name);
    return (await super.sort(files)).sort((a, b) => turn(a) - turn(b) || place(a) - place(b));
  }
}

const UNIT = 'test/**/*.unit.test.ts';
/** Of `npm run check`, which is no part of `npm test`. */
const TIDY = 'test/tidy/*.unit.test.ts';
const shared = {
  // A worker loads the program once, not once for each file: that was a tenth of all the time.
  isolate: false,
  pool: 'forks' as const,
};
const computing = {
  testTimeout: 120_000,
  // They compute and do not wait: one for each core, before the others.
  maxWorkers: 2,
  sequence: { groupOrder: 0 },
};
const onStores = {
  // On two cores: much of the time they wait for a disk, a lease or a deadline.
  maxWorkers: 4,
  sequence: { groupOrder: 1 },
  globalSetup: ['test/setup/servers.ts'],
  // They only end what would never come: how fast it comes depends on the machine and on what else runs on it.
  testTimeout: 240_000,
  hookTimeout: 240_000,
};

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    // The stores of the run are ended in order.
    teardownTimeout: 60_000,
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: [UNIT],
          exclude: [...configDefaults.exclude, TIDY],
          ...computing,
        },
      },
      { test: { ...shared, name: 'tidy', include: [TIDY], ...computing } },
      {
        test: {
          ...shared,
          ...onStores,
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, UNIT],
        },
      },
      // The wire once more, on the other HTTP server.
      {
        test: {
          ...shared,
          ...onStores,
          name: 'node-http',
          include: ['test/http/{wire,framing,strangers,helpfulErrors}.test.ts'],
          env: { HTTP_SERVER: 'node' },
        },
      },
      // A minute of its own: `npm run test:mutation`.
      {
        test: {
          ...shared,
          ...onStores,
          name: 'mutation',
          include: ['test/mutation/{mutation,rounds,cluster,suite}.ts'],
        },
      },
    ],
  },
});
