// What a field of machine.proto holds. Internal to those who walk machine files by their schema.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <machine.pb.h>  // generated from machine.proto

#include <string>

namespace memwall {

inline bool is_quantity(const google::protobuf::FieldDescriptor* field) {
  return field->message_type() == schema::Quantity::descriptor();
}
inline bool is_curve(const google::protobuf::FieldDescriptor* field) {
  return field->message_type() == schema::Curve::descriptor();
}

// What tells the elements of a list apart: their first field, a name or an enum value.
inline std::string key_of(const google::protobuf::Message& element) {
  using google::protobuf::FieldDescriptor;
  const FieldDescriptor* first = element.GetDescriptor()->field(0);
  if (first->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return element.GetReflection()->GetString(element, first);
  return element.GetReflection()->GetEnum(element, first)->name();
}

}  // namespace memwall
