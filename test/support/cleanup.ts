/** Whatever a program starts it ends, however it ends itself. */

/** Steps to undo, in reverse order. A step that fails does not keep the others from running. */
export class Cleanup {
  readonly #steps: (() => Promise<unknown> | unknown)[] = [];

  add(step: () => Promise<unknown> | unknown): void {
    this.#steps.push(step);
  }

  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        console.error('A step of the clean-up failed:', error);
      }
    }
  }
}

/** Runs a program to its end. The exit status is 0 only if it says that all held; a signal undoes its steps first. */
export async function runToEnd(program: (cleanup: Cleanup) => Promise<boolean>): Promise<never> {
  const cleanup = new Cleanup();
  const end = (): void => void cleanup.run().finally(() => process.exit(130));
  process.on('SIGINT', end).on('SIGTERM', end);
  const isHeld = await program(cleanup).catch((error: unknown) => {
    console.error(error);
    return false;
  });
  await cleanup.run();
  process.exit(isHeld ? 0 : 1);
}
