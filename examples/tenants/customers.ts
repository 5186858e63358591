import { addCustomer, grantDevice, grantUser, listNotes, removeCustomer } from './tenants.ts'

const usage = `node customers.ts add CUSTOMER
node customers.ts user CUSTOMER      a session for a page of a user
node customers.ts device CUSTOMER DEVICE   a key for a device
node customers.ts notes CUSTOMER
node customers.ts remove CUSTOMER
`

const [command, customer = '', device = ''] = process.argv.slice(2)
const commands: Readonly<Record<string, () => Promise<unknown>>> = {
  add: () => addCustomer(customer),
  user: () => grantUser(customer),
  device: () => grantDevice(customer, device),
  notes: () => listNotes(customer),
  remove: () => removeCustomer(customer),
}
const work = commands[command ?? '']

if (!work || customer === '' || (command === 'device' && device === '')) {
  process.stderr.write(usage)
  process.exitCode = 2
} else {
  console.log(JSON.stringify(await work(), null, 2))
}
