/** A Chromium for the tests of pages, where there is one. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where Debian and others put the browser; CHROMIUM names another. */
const PROGRAM = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]
  .filter((path) => path !== undefined)
  .find((path) => existsSync(path));
const LAUNCH_MS = 60_000;

/** @returns undefined where none is installed, or the one that is does not start here; says that `what` is not tested then */
export async function openBrowser(what: string): Promise<Browser | undefined> {
  try {
    if (PROGRAM === undefined) throw new Error('none is installed');
    const args = ['--no-sandbox', '--disable-dev-shm-usage'];
    return await chromium.launch({ executablePath: PROGRAM, args, timeout: LAUNCH_MS });
  } catch (error) {
    process.stderr.write(`${what} is not tested in Chromium: ${(error as Error).message}\n`);
    return undefined;
  }
}
