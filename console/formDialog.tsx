/** A button that opens a form in a dialog. When the form has done its action, the dialog closes. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { FormDone } from './form.js';
import { useAddressChange } from './router.js';

interface FormDialogProps {
  readonly title: string;
  /** Label of the button that opens the dialog, if it differs from the title: in a row of a table. */
  readonly button?: string;
  readonly isDangerous?: boolean;
  /** The form. Its outcome is shown below the button, where it stays until the page is left. */
  readonly children: ComponentChildren;
}

export function FormDialog({ title, button = title, isDangerous, children }: FormDialogProps) {
  const [isOpen, setOpen] = useState(false);
  const [outcome, setOutcome] = useState<ComponentChildren>(null);
  const open = (): void => {
    setOutcome(null);
    setOpen(true);
  };
  const finish = (done: ComponentChildren): void => {
    setOutcome(done);
    setOpen(false);
  };
  return (
    <>
      <button type="button" class={isDangerous === true ? 'danger' : ''} aria-label={title} onClick={open}>
        {button}
      </button>
      {isOpen ? (
        <OpenDialog title={title} isDangerous={isDangerous === true} onClose={() => setOpen(false)}>
          <FormDone.Provider value={finish}>{children}</FormDone.Provider>
        </OpenDialog>
      ) : null}
      <div class="outcome" role="status">
        {outcome}
      </div>
    </>
  );
}

function OpenDialog({
  title,
  isDangerous,
  onClose,
  children,
}: {
  readonly title: string;
  readonly isDangerous: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useAddressChange(onClose);
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={isDangerous ? 'holds-form danger' : 'holds-form'}
      aria-label={title}
      onCancel={(event) => {
        // A file field in the form sends this event, too, when its own dialog is canceled.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        onClose();
      }}
    >
      <h2>{title}</h2>
      {children}
      <button type="button" class="quiet close" onClick={onClose}>
        Cancel
      </button>
    </dialog>
  );
}

/** The actions of a page. They stand beside its title. */
export const Toolbar = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="toolbar">{children}</div>
);
