interface Props {
  readonly label: string
  readonly isBusy: boolean
  /** The label while it is busy. */
  readonly busyLabel?: string
  readonly isDangerous?: boolean | undefined
}

/** The button that sends a form. It keeps the focus while it is busy; a button that is disabled would lose it. */
export const Submit = ({ label, isBusy, busyLabel = 'In progress…', isDangerous = false }: Props) => (
  <button type="submit" class={isDangerous ? 'dangerous' : 'primary'} aria-disabled={isBusy}>
    {isBusy ? busyLabel : label}
  </button>
)
