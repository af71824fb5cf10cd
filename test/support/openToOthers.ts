/** What other users of the machine could list, read or change. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The folder and all below it, as `path mode`, except where everything is its owner's alone. */
export function openToOthers(folder: string): string[] {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = all.filter((each) => !each.isSymbolicLink()).map((each) => join(each.parentPath, each.name));
  return [folder, ...paths].flatMap((path) => {
    const mode = (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
    return (mode & 0o077) === 0 ? [] : [`${path} ${mode.toString(8)}`];
  });
}
