/**
 * Puts the module that verifies proofs into dist as it is, and as one page that has everything inline, so that
 * it works from a disk, too. `npm run build` runs it.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MODULE = join('verifier', 'verify.mjs');

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The page, whose own policy permits what is in it and nothing else. */
function pageOf(template: string, module: string): string {
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(template) ?? [];
  const [, own = ''] = /<script type="module">([\s\S]*?)<\/script>/.exec(template) ?? [];
  const script = `${module.replace(/^export /gm, '')}${own}`;
  if (script.includes('</script')) throw new Error('The module can not stand in a page');
  const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; connect-src 'self'; base-uri 'none'; form-action 'none'`;
  return template.replace('POLICY', () => policy).replace(own, () => script);
}

const folder = join('dist', 'verifier');
mkdirSync(folder, { recursive: true });
copyFileSync(MODULE, join(folder, 'verify.mjs'));
const page = pageOf(readFileSync(join('verifier', 'page.html'), 'utf8'), readFileSync(MODULE, 'utf8'));
writeFileSync(join(folder, 'verify.html'), page);
