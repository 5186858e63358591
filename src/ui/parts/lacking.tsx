import { lackText } from '../../access/permissions.ts'

interface Props {
  readonly type: string
  readonly action: string
}

/** Shown instead of what the session may not see. */
export const Lacking = ({ type, action }: Props) => <p class="hint">{lackText(type, action)}.</p>
