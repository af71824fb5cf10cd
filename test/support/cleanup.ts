/** Ends everything that a program has started, in whatever way the program ends. */

/** Clean-up steps that run in reverse order. A failing step does not prevent the other steps. */
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

/**
 * Runs a program to its end. The exit status is 0 only if the program reports success. On a signal the
 * clean-up steps run first.
 */
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
