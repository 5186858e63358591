import type { ComponentChildren } from 'preact'

interface Props {
  /** It can do nothing now. It keeps the focus, which a disabled button would lose. */
  readonly isOff: boolean
  readonly onClick: () => void
  readonly class?: string
  readonly children: ComponentChildren
}

/** A button that can do nothing at times, such as at the end of a list. */
export const Button = ({ isOff, onClick, class: name, children }: Props) => (
  <button type="button" class={name} aria-disabled={isOff} onClick={() => !isOff && onClick()}>
    {children}
  </button>
)
