#include "models/hw/machine_base.h"

#include <memory>
#include <vector>

#include "models/hw/machine_fields.h"

namespace memwall {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void put_on(const Message& difference, Message& base);

Message& element_like(const Message& element, const FieldDescriptor* field, Message& base) {
  const auto* reflection = base.GetReflection();
  for (int i = 0; i < reflection->FieldSize(base, field); ++i) {
    Message* known = reflection->MutableRepeatedMessage(&base, field, i);
    if (key_of(*known) == key_of(element)) return *known;
  }
  return *reflection->AddMessage(&base, field);
}

void put_list_on(const Message& difference, const FieldDescriptor* field, Message& base) {
  const auto* reflection = difference.GetReflection();
  for (int i = 0; i < reflection->FieldSize(difference, field); ++i) {
    const Message& element = reflection->GetRepeatedMessage(difference, field, i);
    put_on(element, element_like(element, field, base));
  }
}

// The field alone, as the difference has it.
void replace(const Message& difference, const FieldDescriptor* field, Message& base) {
  base.GetReflection()->ClearField(&base, field);
  if (!field->is_repeated() && field->message_type()) {
    base.GetReflection()
        ->MutableMessage(&base, field)
        ->CopyFrom(difference.GetReflection()->GetMessage(difference, field));
    return;
  }
  std::vector<const FieldDescriptor*> others;
  std::unique_ptr<Message> only(difference.New());
  only->CopyFrom(difference);
  only->GetReflection()->ListFields(*only, &others);
  for (const FieldDescriptor* other : others)
    if (other != field) only->GetReflection()->ClearField(only.get(), other);
  base.MergeFrom(*only);
}

void put_on(const Message& difference, Message& base) {
  std::vector<const FieldDescriptor*> fields;
  difference.GetReflection()->ListFields(difference, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool block = field->message_type() && !is_quantity(field) && !is_curve(field);
    if (!block)
      replace(difference, field, base);
    else if (field->is_repeated())
      put_list_on(difference, field, base);
    else
      put_on(difference.GetReflection()->GetMessage(difference, field),
             *base.GetReflection()->MutableMessage(&base, field));
  }
}

}  // namespace

void put_on_base(const schema::Machine& difference, schema::Machine& base) {
  base.clear_calibration();
  put_on(difference, base);
  base.clear_base();
}

}  // namespace memwall
