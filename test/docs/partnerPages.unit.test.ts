/**
 * Checks that the pages for partners ask for nothing that only an operator has: the `spindle` command, the
 * settings of the service, and pages that are not served.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Environment } from '../../src/app/settings.js';
import { OPERATORS_GROUP, PAGES } from '../../tools/docs/pages.js';
import { ROOT } from '../support/root.js';

const SETTINGS = Object.keys(Environment.properties)
  // The sample programs of partners read a variable of this name, too.
  .filter((name) => name !== 'SPINDLE_URL');
/** A call of the operators' command. Names of formats, such as `spindle proof v1`, are no calls. */
const COMMAND = /npx spindle\b|`spindle (?![\w ]+ v1`)[a-z][^`]*`|^spindle [a-z]/gm;
/** The contract is for partners and operators, and names the settings that change its promises. */
const OF_BOTH = ['docs/contract.md'];

const files = PAGES.filter(({ group }) => group !== OPERATORS_GROUP).map(({ file }) => file);

describe('pages for partners', () => {
  test.each(files)('%s never asks a partner to run the spindle command', (file) => {
    expect(readFileSync(join(ROOT, file), 'utf8').match(COMMAND) ?? []).toEqual([]);
  });

  test.each(files.filter((file) => !OF_BOTH.includes(file)))('%s names no setting of the service', (file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    expect(SETTINGS.filter((name) => new RegExp(`(?<![\\w.])${name}(?!\\w)`).test(text))).toEqual([]);
  });
});

test('finds the commands of the page for operators', () => {
  expect(readFileSync(join(ROOT, 'docs', 'operators.md'), 'utf8').match(COMMAND)!.length).toBeGreaterThan(50);
});
