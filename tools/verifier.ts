/**
 * Copies the verifier module to dist, and writes it as a single page with everything inline, which also works
 * from a local file. `npm run build` runs this tool.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MODULE = join('verifier', 'verify.mjs');

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Returns the page. Its Content Security Policy permits only the inline style and script. */
function pageOf(template: string, module: string): string {
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(template) ?? [];
  const [, own = ''] = /<script type="module">([\s\S]*?)<\/script>/.exec(template) ?? [];
  const script = `${module.replace(/^export /gm, '')}${own}`;
  if (script.includes('</script'))
    throw new Error('The verifier contains </script, so it cannot be embedded in a page');
  const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; connect-src 'self'; base-uri 'none'; form-action 'none'`;
  return template.replace('POLICY', () => policy).replace(own, () => script);
}

const folder = join('dist', 'verifier');
mkdirSync(folder, { recursive: true });
copyFileSync(MODULE, join(folder, 'verify.mjs'));
const page = pageOf(readFileSync(join('verifier', 'page.html'), 'utf8'), readFileSync(MODULE, 'utf8'));
writeFileSync(join(folder, 'verify.html'), page);
