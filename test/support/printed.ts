/** Captures what a command prints to the standard output. */
import { vi } from 'vitest';

export async function printedBy(run: () => Promise<number>): Promise<{ status: number; out: string }> {
  let out = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text;
    return true;
  });
  try {
    return { status: await run(), out };
  } finally {
    write.mockRestore();
  }
}
