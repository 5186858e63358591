/** Fields of the dialogs that create credentials. */

import { Choice, TextField } from '../../parts/fields.tsx'

const SECONDS = {
  600: '10 minutes',
  3600: '1 hour',
  43_200: '12 hours',
  86_400: '1 day',
  2_592_000: '30 days',
  31_536_000: '1 year',
}

interface FieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A lifetime in seconds; empty: the credential does not expire. */
export const Lifetime = ({
  value,
  onChange,
  longest = Number.POSITIVE_INFINITY,
}: FieldProps & { readonly longest?: number }) => (
  <Choice
    label="Expires"
    value={value}
    options={[
      ...(longest === Number.POSITIVE_INFINITY ? [['', 'Never'] as const] : []),
      ...Object.entries(SECONDS)
        .filter(([seconds]) => Number(seconds) <= longest)
        .map(([seconds, text]) => [seconds, `In ${text}`] as const),
    ]}
    onChange={onChange}
  />
)

/** The API key that issues a credential. It is sent with this request only. */
export const IssuingKey = (field: FieldProps) => (
  <TextField
    label="API key"
    hint="The session of the dashboard cannot issue credentials: an API key of the environment must. The page does not store it."
    type="password"
    required
    {...field}
  />
)

export const Name = (field: FieldProps) => <TextField label="Name" required maxLength={200} {...field} />

/** The headers of a request that another credential than the session sends. */
export const asKey = (token: string) => ({ authorization: `Bearer ${token.trim()}` })
