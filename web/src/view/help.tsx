// The keyboard help, from the table that dispatches.
import { useEffect, useRef } from "preact/hooks";
import { act } from "../control.ts";
import { KEYS } from "../keys.ts";
import { useSelect } from "../store.ts";

export function Help() {
  const open = useSelect((state) => state.help);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  return (
    <dialog
      ref={dialog}
      aria-labelledby="help-title"
      onClose={() => act().set({ help: false })}
      onClick={(event) => event.target === dialog.current && act().set({ help: false })}
    >
      <div>
        <h2 id="help-title">Keys</h2>
        <dl>
          {KEYS.filter((key) => key.does !== "").map((key) => (
            <div key={key.shown}>
              <dt>
                {key.shown.split(" ").map((it) => (
                  <kbd key={it}>{it}</kbd>
                ))}
              </dt>
              <dd>{key.does}</dd>
            </div>
          ))}
        </dl>
        <h2>Mouse</h2>
        <p>
          Drag across a chart to zoom, double click to go back. Click a phase, a row or a rank of the heat map
          to see it alone.
        </p>
        <button type="button" onClick={() => act().set({ help: false })}>
          close
        </button>
      </div>
    </dialog>
  );
}
