/**
 * `npm run sizes [-- ROOT]` prints the longest files and functions of a project for a reviewer. No test
 * limits their length.
 */
import { ROOT } from '../support/root.js';
import { type Length, lengths } from './lengths.js';

const SHOWN = 20;

function print(what: string, measured: readonly Length[]): void {
  console.log(`Longest of ${measured.length} ${what}, in lines:`);
  for (const { name, lines } of measured.slice(0, SHOWN))
    console.log(`${String(lines).padStart(6)}  ${name}`);
}

const { files, functions } = lengths(process.argv[2] ?? ROOT);
print('files', files);
print('functions', functions);
