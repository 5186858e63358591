import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

interface Stored {
  readonly env_id: string
  /** The API key of the environment. It stays on the server. */
  readonly key: string
}

type Customers = Readonly<Record<string, Stored>>

/** The customers and their keys. A real product has them in its database, encrypted. */
const file = new URL('customers.json', import.meta.url)

const read = (): Customers => (existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Customers) : {})

const write = (customers: Customers): void => {
  const part = new URL('customers.json.part', import.meta.url)
  writeFileSync(part, JSON.stringify(customers), { mode: 0o600 })
  renameSync(part, file)
}

export const keyOf = (customer: string): Stored => {
  const stored = read()[customer]
  if (!stored) throw new Error(`CUSTOMER: expected a customer that was added, got ${customer}`)
  return stored
}

export const storeCustomer = (customer: string, stored: Stored): void =>
  write({ ...read(), [customer]: stored })

export const forgetCustomer = (customer: string): void => {
  const { [customer]: _, ...others } = read()
  write(others)
}
