import { signal } from '@preact/signals'
import { type ComponentChildren, Fragment, type VNode } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { focusedLast } from '../frame/focus.ts'

interface Props {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** The open dialogs by the id of the place that has opened each. */
const open = signal<ReadonlyMap<string, VNode>>(new Map())

const show = (id: string, dialog: VNode): void => void (open.value = new Map(open.peek()).set(id, dialog))

const hide = (id: string): void => void (open.value = new Map([...open.peek()].filter(([one]) => one !== id)))

/**
 * A modal dialog. The browser keeps the focus in it and closes it with Escape; the focus then returns to the button that has
 * opened it. `Dialogs` renders it, so that its text is no part of the row or the heading that has the button.
 */
export const Dialog = ({ title, isOpen, onClose, children }: Props): null => {
  const id = useId()
  useLayoutEffect(() => {
    if (isOpen)
      show(
        id,
        <Modal title={title} onClose={onClose}>
          {children}
        </Modal>,
      )
  })
  useLayoutEffect(() => {
    if (isOpen) return () => hide(id)
  }, [isOpen])
  return null
}

/** The place of all dialogs, once on the page. */
export const Dialogs = () => (
  <>
    {[...open.value].map(([id, dialog]) => (
      <Fragment key={id}>{dialog}</Fragment>
    ))}
  </>
)

interface ModalProps {
  readonly title: string
  /** Missing if the reader cannot close it. */
  readonly onClose?: () => void
  readonly children: ComponentChildren
}

/** The element that had the focus before each dialog was opened. */
const openers = new WeakMap<Element, HTMLElement>()

/** The element, or if its own dialog was closed meanwhile, the one that had the focus before that. */
const remaining = (element: HTMLElement | undefined): HTMLElement | undefined => {
  if (!element || element.isConnected) return element
  const dialog = element.closest('dialog')
  return dialog ? remaining(openers.get(dialog)) : undefined
}

export const Modal = ({ title, onClose, children }: ModalProps) => {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useLayoutEffect(() => {
    const dialog = element.current
    const before = focusedLast()
    if (dialog && before) openers.set(dialog, before)
    dialog?.showModal()
    return () => {
      dialog?.close() // while it is in the document, so that the focus returns
      const { activeElement } = document
      // The browser has no place to return to if another dialog, which is closed now, has opened this one.
      if (dialog && (activeElement === document.body || dialog.contains(activeElement)))
        remaining(openers.get(dialog))?.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      data-stays={onClose ? undefined : ''}
      onCancel={(event) => !onClose && event.preventDefault()}
      onClose={() => {
        if (onClose) onClose()
        else if (element.current?.isConnected) element.current.showModal() // browsers close it at the second Escape
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
      {onClose && (
        <button type="button" class="plain close" aria-label="Close" onClick={onClose}>
          ×
        </button>
      )}
    </dialog>
  )
}
