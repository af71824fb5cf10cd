/** Starts Chromium for tests of web pages, if it is installed. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Paths where Debian and other distributions install the browser. The variable CHROMIUM overrides them. */
const PROGRAM = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]
  .filter((path) => path !== undefined)
  .find((path) => existsSync(path));
const LAUNCH_MS = 60_000;

/**
 * @returns undefined if no browser is installed or the installed one does not start; prints in that case that
 * `what` is not tested
 */
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
