import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { deletions, isGone, textOf } from '../frame/api.ts'
import { reportDone, reportFailed } from '../frame/notices.tsx'
import { Dialog } from './dialog.tsx'
import { Alert } from './texts.tsx'

/** A refusal that a field of the dialog shows. */
export class ShownAtField extends Error {}

interface Props {
  readonly label: string
  /** The effect, in a sentence: shown as the title of the button and in its dialog. */
  readonly does: string
  /** Executes it. Resolves with a notice of what was done. */
  readonly run: () => Promise<ComponentChildren>
  /** Further content of the dialog, such as the affected runs or fields. With it or `asks`, the button opens a dialog. */
  readonly children?: ComponentChildren
  readonly asks?: boolean
  readonly isDangerous?: boolean
  /** Why it cannot be used now. */
  readonly refusal?: string | undefined
  readonly onOpen?: () => void
}

/** A button that shows what it will do and reports what it did. */
export const Action = ({ label, does, run, children, asks, isDangerous, refusal, onOpen }: Props) => {
  const isOpen = useSignal(false)
  const isBusy = useSignal(false)
  const failure = useSignal('')

  const execute = async (): Promise<void> => {
    isBusy.value = true
    failure.value = ''
    try {
      const done = await run()
      isOpen.value = false
      reportDone(done)
    } catch (error) {
      if (error instanceof ShownAtField) return
      if (isGone(error)) deletions.value++
      if (isOpen.value) failure.value = textOf(error)
      else reportFailed(`${label}: ${textOf(error)}`)
    } finally {
      isBusy.value = false
    }
  }

  const hasDialog = asks === true || children !== undefined
  const open = (): void => {
    failure.value = ''
    onOpen?.()
    isOpen.value = true
  }

  return (
    <>
      <button
        type="button"
        class={isDangerous ? 'dangerous' : ''}
        title={refusal ?? does}
        disabled={refusal !== undefined || (isBusy.value && !hasDialog)}
        onClick={() => (hasDialog ? open() : void execute())}
      >
        {label}
      </button>
      <Dialog title={label} isOpen={isOpen.value} onClose={() => (isOpen.value = false)}>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            void execute()
          }}
        >
          <p>{does}</p>
          {children}
          <Alert text={failure.value} />
          <div class="buttons">
            <button type="submit" class={isDangerous ? 'dangerous' : 'primary'} disabled={isBusy.value}>
              {isBusy.value ? 'In progress…' : label}
            </button>
            <button type="button" class="plain" onClick={() => (isOpen.value = false)}>
              Back
            </button>
          </div>
        </form>
      </Dialog>
    </>
  )
}
