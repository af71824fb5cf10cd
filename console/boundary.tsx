/**
 * Shows an error message in place of a page that failed to render, so that the remaining console stays
 * usable.
 */
import { Component, type ComponentChildren } from 'preact';

interface State {
  readonly error?: Error;
}

export class Boundary extends Component<{ readonly children: ComponentChildren }, State> {
  override state: State = {};

  static override getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override componentDidCatch(error: Error): void {
    console.error(error);
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div class="fault" role="alert">
        <p>This page could not be shown: {error.message}. The service itself is not affected.</p>
        <button type="button" class="quiet" onClick={() => this.setState({ error: undefined } as never)}>
          Show the page again
        </button>
      </div>
    );
  }
}
