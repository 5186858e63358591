import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { randomKey } from '../../client/randomKey.ts'
import { deletions, isFinalRefusal, isGone, sentTextOf } from '../frame/api.ts'
import { reportDone, reportFailed } from '../frame/notices.tsx'
import { refreshSession } from '../frame/session.ts'
import { Dialog } from './dialog.tsx'
import { Submit } from './submit.tsx'
import { Alert } from './texts.tsx'

/** A refusal that a field of the dialog shows. */
export class ShownAtField extends Error {}

interface Props {
  readonly label: string
  /** The effect, in a sentence: shown as the title of the button and in its dialog. */
  readonly does: string
  /**
   * Executes it. Resolves with a notice of what was done. A repetition after an unknown outcome has the same key, so that nothing is
   * done twice. A changed field and an opened dialog get another one. What it changes in the dialog depends on `isSame`: a late reply
   * may find that the dialog was opened again.
   */
  readonly run: (idempotencyKey: string, isSame: () => boolean) => Promise<ComponentChildren>
  /** Further content of the dialog, such as the affected runs or fields. With it or `asks`, the button opens a dialog. */
  readonly children?: ComponentChildren
  readonly asks?: boolean
  readonly isDangerous?: boolean
  /** Why it cannot be used now. */
  readonly refusal?: string | undefined
  readonly onOpen?: () => void
}

/**
 * A button that shows what it will do and reports what it did. One that cannot be used now says why when it is used: a disabled
 * button takes no focus, and a phone shows no titles.
 */
export const Action = ({ label, does, run, children, asks, isDangerous, refusal, onOpen }: Props) => {
  const isOpen = useSignal(false)
  const isBusy = useSignal(false)
  const failure = useSignal('')
  const openings = useRef(0)
  const key = useRef(randomKey())
  const renewKey = (): void => void (key.current = randomKey())

  const execute = async (): Promise<void> => {
    if (isBusy.peek()) return
    isBusy.value = true
    failure.value = ''
    const opening = openings.current
    const isSame = (): boolean => opening === openings.current
    try {
      const done = await run(key.current, isSame)
      renewKey()
      if (isSame()) isOpen.value = false
      reportDone(done)
    } catch (error) {
      if (error instanceof ShownAtField) return
      if (isFinalRefusal(error)) renewKey()
      if (isGone(error)) deletions.value++
      if (isOpen.value && isSame()) failure.value = sentTextOf(error)
      else reportFailed(`${label}: ${sentTextOf(error)}`)
    } finally {
      isBusy.value = false
    }
  }

  const hasDialog = asks === true || children !== undefined
  const open = (): void => {
    openings.current++
    failure.value = ''
    renewKey()
    onOpen?.()
    isOpen.value = true
  }
  const use = ({ detail }: MouseEvent): void => {
    // The second click of a double click comes after the first has been executed; the keyboard clicks with a detail of 0.
    if (!hasDialog && detail > 1) return
    if (refusal !== undefined) {
      reportFailed(`${label}: ${refusal}`)
      void refreshSession() // the permission may have been added meanwhile
    } else if (hasDialog) open()
    else void execute()
  }

  return (
    <>
      <button
        type="button"
        class={isDangerous ? 'dangerous' : ''}
        title={refusal ?? does}
        aria-disabled={refusal !== undefined || (isBusy.value && !hasDialog)}
        onClick={use}
      >
        {label}
      </button>
      <Dialog title={label} isOpen={isOpen.value} onClose={() => (isOpen.value = false)}>
        <form
          onInput={renewKey}
          onSubmit={(event) => {
            event.preventDefault()
            void execute()
          }}
        >
          <p>{does}</p>
          {children}
          <Alert text={failure.value} />
          <div class="buttons">
            <Submit label={label} isBusy={isBusy.value} isDangerous={isDangerous} />
            <button type="button" class="plain" onClick={() => (isOpen.value = false)}>
              Back
            </button>
          </div>
        </form>
      </Dialog>
    </>
  )
}
