/**
 * Builds and runs a program of programs.json: `node tools/run.mjs GROUP NAME …`. It serves `npm run bench --
 * NAME …`, `npm run chaos -- NAME …` and scripts with a single program. Without a name it lists the names.
 * With --help it shows the program's options.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const [group, name, ...rest] = process.argv.slice(2);
const programs = JSON.parse(readFileSync(new URL('programs.json', import.meta.url), 'utf8'))[group];
const chosen = Object.hasOwn(programs, name ?? '') ? programs[name] : undefined;

if (chosen === undefined) {
  const isAsked = name === undefined || name === '--help';
  if (!isAsked) console.error(`The ${group} program ${name} does not exist.\n`);
  const width = Math.max(...Object.keys(programs).map((each) => each.length));
  for (const [each, { about }] of Object.entries(programs)) console.log(`${each.padEnd(width)}  ${about}`);
  console.log(`\nTo list the options of a program, run: npm run ${group} -- NAME --help`);
  process.exitCode = isAsked ? 0 : 1;
} else if (rest.includes('--help')) {
  console.log([chosen.about, ...chosen.options.map((option) => `  ${option}`)].join('\n'));
} else {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  const program = resolve('dist', `${chosen.program}.js`);
  process.argv = [process.argv[0], program, ...rest];
  await import(program);
}
