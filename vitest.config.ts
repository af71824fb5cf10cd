import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // `npm run planted` takes a minute of its own.
    include: process.env.TESTS === 'planted' ? ['test/planted.ts'] : ['test/**/*.test.ts'],
    globalSetup: ['test/support/stores.ts'],
    pool: 'forks',
    // A worker loads the program once, not once for each file: that was a tenth of all the time.
    isolate: false,
    // On two cores: much of the time they wait for a disk, a lease or a deadline.
    maxWorkers: 4,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
